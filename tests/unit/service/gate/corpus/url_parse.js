const u = new URL('https://user:pw@shop.example.com:8443/a/b?c=1#d');
console.log(u.hostname, u.port, u.searchParams.get('c'));
