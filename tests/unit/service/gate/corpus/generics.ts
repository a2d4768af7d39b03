type Result<T, E extends Error = Error> = { ok: true; value: T } | { ok: false; error: E };
function attempt<T>(fn: () => T): Result<T> {
  try { return { ok: true, value: fn() }; } catch (e) { return { ok: false, error: e as Error }; }
}
const r = attempt<number>(() => JSON.parse('{"a": 1 / 2}'));
console.log(r.ok ? r.value : r.error.name);
