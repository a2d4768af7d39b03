class Node2<T> { constructor(public value: T, public next: Node2<T> | null = null) {} }
let head: Node2<string> | null = null;
for (const v of ['c', 'b', 'a']) head = new Node2(v, head);
for (let n = head; n; n = n.next) process.stdout.write(`${n.value}${n.next ? ' -> ' : '\n'}`);
