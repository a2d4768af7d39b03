// Required by an interpreter that is started ahead of its program: waits for the program's arguments
// and environment, then leaves no trace of itself. The last thing that happens before the
// interpreter loads the program's file.
'use strict';
{
  const START_FD = 3;
  const fs = require('fs');
  const Module = require('module');

  const parts = [];
  const part = Buffer.alloc(65536);
  for (let n; (n = fs.readSync(START_FD, part, 0, part.length, null)) > 0;) {
    parts.push(Buffer.from(part.subarray(0, n)));
  }
  fs.closeSync(START_FD);
  const data = Buffer.concat(parts);
  if (data.length < 8 || Number(data.readBigUInt64LE(0)) !== data.length) {
    process.reallyExit(125); // whoever should have said it is gone
  }
  const words = data.toString('utf8', 8).split('\0').slice(0, -1);
  const n = Number(words[0]);
  process.argv.push(...words.slice(1, 1 + n));
  for (const pair of words.slice(1 + n)) {
    const at = pair.indexOf('=');
    process.env[pair.slice(0, at)] = pair.slice(at + 1);
  }
  process.execArgv.length = 0;
  process._preload_modules.length = 0;
  delete require.cache[__filename];
  for (const key of Object.keys(Module._pathCache)) {
    delete Module._pathCache[key];
  }
}
