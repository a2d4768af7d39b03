const item = (title: string, n: number) => `  <item><title>${title}</title><guid isPermaLink="false">${n}</guid></item>`;
const feed = ['<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom">', item('a & b', 1), '</rss>'];
console.log(feed.join('\n'));
