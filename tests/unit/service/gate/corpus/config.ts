/** Options. @see https://www.typescriptlang.org/tsconfig */
export interface Options { host?: string; port?: number; paths: Record<string, string[]> }
const defaults: Options = { host: 'localhost', port: 8080, paths: { '@app/*': ['src/*'] } };
export const load = (o: Partial<Options> = {}): Options => ({ ...defaults, ...o });
console.log(load({ port: 80 }));
