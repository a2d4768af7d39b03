const NS = 'http://www.w3.org/2000/svg';
const bars = [3, 1, 4, 1, 5].map((v, i) => `<rect x="${i * 12}" width="10" height="${v * 10}"/>`);
console.log(`<svg xmlns="${NS}">${bars.join('')}</svg>`);
