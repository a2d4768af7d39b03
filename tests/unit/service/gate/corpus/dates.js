const start = new Date('2024-02-28T23:30:00Z');
const pad = (n) => String(n).padStart(2, '0');
for (const h of [0, 1, 24]) {
  const d = new Date(start.getTime() + h * 3_600_000);
  console.log(`${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}`, d.toISOString());
}
