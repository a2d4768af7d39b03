function parse(line) {
  const out = [];
  const re = /("([^"]|"")*"|[^,]*)(,|$)/g;
  let m;
  while ((m = re.exec(line)) && m.index < line.length) {
    out.push(m[1].replace(/^"|"$/g, '').replace(/""/g, '"'));
  }
  return out;
}
console.log(parse('a,"b ""quoted"", c",3.14'), '1:2:3'.split(':'));
