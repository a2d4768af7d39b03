const assert = require('assert');
const test = (name, fn) => { try { fn(); console.log('ok   ' + name); } catch (e) { console.log('FAIL ' + name + ': ' + e.message); } };
const clamp = (x, lo, hi) => Math.min(hi, Math.max(lo, x));
test('clamp: below', () => assert.strictEqual(clamp(-1, 0, 1), 0));
test('clamp: above', () => assert.strictEqual(clamp(9 / 2, 0, 1), 1));
