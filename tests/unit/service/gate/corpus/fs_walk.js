const fs = require('node:fs');
const path = require('node:path');

// Walks a folder; see https://nodejs.org/api/fs.html
function* walk(dir) {
  for (const entry of fs.readdirSync(dir, { withFileTypes: true })) {
    const full = path.join(dir, entry.name);
    if (entry.isDirectory()) yield* walk(full);
    else yield full;
  }
}
const ext = new Set(['.js', '.json', '.md']);
console.log([...walk('.')].filter((f) => ext.has(path.extname(f))).slice(0, 5));
