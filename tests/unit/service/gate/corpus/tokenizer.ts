const TOKEN = /\s*(?:(\d+\.?\d*)|([-+*/()]))/y;
function* tokens(src: string): Generator<string> {
  TOKEN.lastIndex = 0;
  for (let m: RegExpExecArray | null; (m = TOKEN.exec(src)); ) yield m[1] ?? m[2];
}
console.log([...tokens('3 * (4 - 1.5) / 2')].join(' '));
