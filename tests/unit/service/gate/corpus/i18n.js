const messages = { en: { hi: 'Hello, {name}!' }, de: { hi: 'Grüß dich, {name}!' }, ja: { hi: '{name}さん、こんにちは。' } };
const t = (lang, key, vars) => messages[lang][key].replace(/\{(\w+)\}/g, (_, k) => vars[k] ?? `{${k}}`);
for (const lang of Object.keys(messages)) console.log(t(lang, 'hi', { name: '😀' }));
