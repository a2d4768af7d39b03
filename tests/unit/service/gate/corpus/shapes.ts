interface Shape { readonly kind: 'circle' | 'square'; size: number }
const area = (s: Shape): number => (s.kind === 'circle' ? Math.PI * s.size ** 2 : s.size ** 2);
const shapes: Shape[] = [{ kind: 'circle', size: 1 }, { kind: 'square', size: 2 }];
console.log(shapes.map((s) => `${s.kind}: ${area(s).toFixed(2)}`).join('\n'));
