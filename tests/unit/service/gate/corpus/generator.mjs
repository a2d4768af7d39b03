import { EventEmitter } from 'node:events';
import util from 'util';

export function* fib() {
  let [a, b] = [0n, 1n];
  for (;;) { yield a; [a, b] = [b, a + b]; }
}
const e = new EventEmitter();
e.on('n', (n) => process.stdout.write(util.format('%s;', n)));
for (const n of fib()) { if (n > 100n) break; e.emit('n', n); }
