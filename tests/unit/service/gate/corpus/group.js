#!/usr/bin/env node
'use strict';
const rows = [
  { name: 'Anna', tags: ['a', 'b'] },
  { name: "Ben O'Neil", tags: [] },
];
const byTag = rows.reduce((acc, { name, tags }) => {
  for (const tag of tags) (acc[tag] ??= []).push(name);
  return acc;
}, {});
console.log(JSON.stringify(byTag, null, 2), `${rows.length} rows`);
