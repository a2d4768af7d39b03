enum Level { Debug = 'debug', Info = 'info' }
type Key = `${Level}:${number}`;
const key: Key = `${Level.Info}:42`;
console.log(key as string, Object.values(Level));
