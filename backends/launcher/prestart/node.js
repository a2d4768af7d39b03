// Required by an interpreter that is started ahead of its program: waits for the program's arguments
// and environment, then leaves no trace of itself. The last thing that happens before the
// interpreter loads the program's file. Everything here avoids what a program could find changed:
// Buffer's pool, and modules that the interpreter itself has not loaded.
'use strict';
{
  const START_FD = 63;
  const WORKDIR = '/sandbox';

  const read = (fs) => {
    let data = Buffer.alloc(65536); // alloc, and all that is larger than the pool's part, is its own
    let length = 0;
    while (length < 11 || length < Number(data.toString('latin1', 0, 10))) {
      if (length === data.length) {
        const larger = Buffer.alloc(2 * length);
        data.copy(larger);
        data = larger;
      }
      const n = fs.readSync(START_FD, data, length, data.length - length, null);
      if (n === 0) {
        process.reallyExit(125); // whoever should have said it is gone
      }
      length += n;
    }
    fs.closeSync(START_FD);
    return data.toString('utf8', 11, length).split('\0').slice(0, -1);
  };

  const start = () => {
    const words = read(require('fs'));
    const n = Number(words[0]);
    process.argv.push(...words.slice(2, 2 + n));
    for (const pair of words.slice(2 + n)) {
      const at = pair.indexOf('=');
      process.env[pair.slice(0, at)] = pair.slice(at + 1);
    }
    // Where it has waited, the loader's look for a package.json of its own could find no job's.
    process.chdir(WORKDIR);
  };

  const forget = () => {
    const paths = module.constructor._pathCache;
    process.execArgv.length = 0;
    process._preload_modules.length = 0;
    delete require.cache[__filename];
    for (const key of Object.keys(paths)) {
      delete paths[key];
    }
  };

  // The program's own threads require this file too: there is nothing to wait for any more.
  if (!process.chdir.disabled) {
    start();
  }
  forget();
}
