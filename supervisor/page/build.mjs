/**
 * Builds the page at `/` from this folder into dist/supervisor/page/, as `npm run build` does after the compile:
 *
 * 1. `page-HASH.js` and `page-HASH.css` are bundled and minified, and `icon-HASH.svg` is copied. HASH follows from the
 *    content, so a browser may keep these files for ever.
 * 2. `index.html` gets their names, at relative addresses: `_k/page/NAME`.
 * 3. Each file lies there three times: as it is, and compressed, with `.br` and `.gz` behind its name.
 * 4. `licenses.txt` has the licences of the bundled packages.
 * 5. `manifest.json` is for the server: `{ NAME: CONTENT_TYPE }`. Only these files may be sent.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const SOURCE = fileURLToPath(new URL('.', import.meta.url));
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const TARGET = `${ROOT}dist/supervisor/page/`;
const BUNDLED = ['preact', 'htm', 'uplot'];
const TYPES = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  html: 'text/html; charset=utf-8',
};
/** The codings, by the ends of their files' names. */
const CODINGS = {
  '.br': (bytes) =>
    brotliCompressSync(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    }),
  '.gz': (bytes) => gzipSync(bytes, { level: 9 }),
};

/** Bundles script and styles. @returns their text, by file extension */
async function bundle() {
  const { outputFiles } = await build({
    entryPoints: { page: `${SOURCE}app/main.ts`, style: `${SOURCE}styles/page.css` },
    outdir: TARGET,
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: ['chrome116', 'firefox124', 'safari17.4'],
    legalComments: 'none',
    banner: { js: '/* With preact, htm and uPlot, whose licences are in licenses.txt of this folder. */' },
    logLevel: 'warning',
  });
  return Object.fromEntries(outputFiles.map(({ path, text }) => [path.split('.').pop(), text]));
}

function hashed(text, extension) {
  const hash = createHash('sha256').update(text).digest('base64url').slice(0, 10);
  return `${extension === 'svg' ? 'icon' : 'page'}-${hash}.${extension}`;
}

const texts = { ...(await bundle()), svg: readFileSync(`${SOURCE}icon.svg`, 'utf8') };
const named = Object.entries(texts).map(([extension, text]) => [hashed(text, extension), text]);
const nameOf = (extension) => named.map(([name]) => name).find((name) => name.endsWith(`.${extension}`));
const index = readFileSync(`${SOURCE}index.html`, 'utf8').replace(
  /\{\{(\w+)\}\}/g,
  (_, extension) => `_k/page/${nameOf(extension)}`,
);
const files = { ...Object.fromEntries(named), 'index.html': index };

mkdirSync(TARGET, { recursive: true });
const manifest = Object.fromEntries(Object.keys(files).map((name) => [name, TYPES[name.split('.').pop()]]));
for (const [name, text] of Object.entries(files)) {
  const bytes = Buffer.from(text);
  const isThere = existsSync(TARGET + name) && readFileSync(TARGET + name).equals(bytes);
  if (isThere && Object.keys(CODINGS).every((suffix) => existsSync(TARGET + name + suffix))) continue;
  for (const [suffix, compress] of Object.entries(CODINGS))
    writeFileSync(TARGET + name + suffix, compress(bytes));
  writeFileSync(TARGET + name, bytes);
}
const licenses = BUNDLED.map((name) => {
  const folder = `${ROOT}node_modules/${name}/`;
  const { version } = JSON.parse(readFileSync(`${folder}package.json`, 'utf8'));
  return `${name} ${version}\n\n${readFileSync(`${folder}LICENSE`, 'utf8').trim()}\n`;
});
writeFileSync(`${TARGET}licenses.txt`, licenses.join(`\n${'-'.repeat(80)}\n\n`));
writeFileSync(`${TARGET}manifest.json`, `${JSON.stringify(manifest, null, 2)}\n`);

// Files of earlier builds would stay in the package.
const current = new Set(Object.keys(files));
for (const name of readdirSync(TARGET))
  if (/^(?:page|icon)-/.test(name) && !current.has(name.replace(/\.(?:br|gz)$/, ''))) rmSync(TARGET + name);
