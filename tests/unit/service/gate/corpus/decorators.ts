function log(_target: unknown, name: string, d: PropertyDescriptor): PropertyDescriptor {
  const fn = d.value;
  return { ...d, value(...args: unknown[]) { console.log(`> ${name}(${args.map(String).join(', ')})`); return fn.apply(this, args); } };
}
class Calc { add(a: number, b: number) { return a + b; } }
Object.defineProperty(Calc.prototype, 'add', log(null, 'add', Object.getOwnPropertyDescriptor(Calc.prototype, 'add')!));
console.log(new Calc().add(1, 2));
