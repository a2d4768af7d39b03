const mul = (a, b) => a.map((r) => b[0].map((_, j) => r.reduce((s, x, k) => s + x * b[k][j], 0)));
const m = mul([[1, 2], [3, 4]], [[0, 1], [1, 0]]);
console.log(m.map((r) => r.join('\t')).join('\n')); /* 2 1
4 3 */
