import http from 'node:http';
const server = http.createServer((req, res) => res.end(`hi ${req.url}\n`));
server.listen(0, '127.0.0.1', () => {
  http.get(`http://localhost:${server.address().port}/x`, (r) => { r.resume(); server.close(); });
});
