const tests = [/^\d{4}-\d\d-\d\d$/, /["'`]/g, /[/\\]+/, /https?:\/\/[^/]+\/?/i];
const total = tests.length / 2;
for (const re of tests) {
  if (re.test('2024-01-01')) console.log(`${re.source} matches`);
}
console.log('a/b/c'.split(/\//), total / tests.length);
