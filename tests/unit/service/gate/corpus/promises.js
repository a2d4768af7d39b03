const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
async function pool(jobs, n) {
  const results = [];
  let next = 0;
  await Promise.all(Array.from({ length: n }, async () => {
    while (next < jobs.length) { const i = next++; results[i] = await jobs[i](); }
  }));
  return results;
}
pool([1, 2, 3].map((x) => async () => { await sleep(x); return x ** 2; }), 2)
  .then((r) => console.log(`done: ${r.map((x) => `${x}%`).join(', ')}`));
