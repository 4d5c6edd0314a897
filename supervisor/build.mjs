/**
 * Bundles the compiled supervisor into dist/front/, as `npm run build` does after the compile: 20 files load in a third less
 * time than 450. The entries keep their names, and share the other files. Packages stay imports. dist/supervisor/ is for
 * tests and benchmarks; the package has only its types.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const DIST = fileURLToPath(new URL('../dist/', import.meta.url));
const COMPILED = `${DIST}supervisor/`;
const TARGET = `${DIST}front/`;

/** Commands, what `index.ts` loads, and the programs of processes and threads that the front starts. */
const ENTRIES = [
  'cli.js',
  'model-archiver.js',
  'program.js',
  'machine/look-up-process.js',
  'store/archives/folder-removal-process.js',
  'runtimes/onnx/optimized/digest-thread.js',
  'jobs/local/table-thread.js',
].map((name) => COMPILED + name);

/** Lets modules find the files that they name, `new URL('…', import.meta.url)`, from the place of the bundle. */
const places = {
  name: 'places',
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replace(OWN_URL, (_, to) => {
        const place = JSON.stringify(`./${placeOf(join(dirname(path), to))}`);
        return `new URL(${place}, import.meta.url)`;
      }),
    }));
  },
};
const OWN_URL = /new URL\('([^']+)', import\.meta\.url\)/g;

/** @throws Error if a module of the supervisor is named that is no entry, because the package lacks it */
function placeOf(path) {
  if (ENTRIES.includes(path)) return basename(path);
  if (path.startsWith(COMPILED) && path.endsWith('.js'))
    throw new Error(`${path} is started by its path: add it to ENTRIES in supervisor/build.mjs`);
  return relative(TARGET, path);
}

/** Packages that load faster by `require` than by `import`, for which Node parses them once more: 0.05 s of CPU at each start. */
const REQUIRED = /^(?:@koa\/router|commander|koa|msgpackr|pino|pino-pretty|ws)$/;
const requires = {
  name: 'requires',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: REQUIRED }, ({ path, kind }) =>
      kind === 'import-statement' ? { path, namespace: 'required' } : { path, external: true },
    );
    onLoad({ filter: REQUIRED, namespace: 'required' }, ({ path }) => ({
      contents: `module.exports = require('${path}')`,
    }));
  },
};
/** Errors and tensors of functions reach programs, which know their classes by `index.ts`: so there is one copy of them. */
const SHARED = ['protocol/errors.js', 'protocol/values/tensor.js'];
const shared = {
  name: 'shared',
  setup({ onResolve }) {
    onResolve({ filter: /\/(?:errors|tensor)\.js$/ }, ({ path, resolveDir }) => {
      const found = SHARED.find((file) => join(resolveDir, path) === DIST + file);
      return found === undefined ? null : { path: `../${found}`, external: true };
    });
  },
};
/** There is no `require` in ES modules. */
const REQUIRE = `import { createRequire as requireFrom } from 'node:module';
const require = requireFrom(import.meta.url);`;

const { outputFiles } = await build({
  entryPoints: ENTRIES,
  entryNames: '[name]',
  outdir: TARGET,
  bundle: true,
  splitting: true,
  write: false,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  plugins: [places, requires, shared],
  banner: { js: REQUIRE },
  logLevel: 'warning',
});

mkdirSync(TARGET, { recursive: true });
for (const { path, contents } of outputFiles)
  if (!existsSync(path) || !readFileSync(path).equals(contents)) writeFileSync(path, contents);

// Files of earlier builds would stay in the package.
const current = new Set(outputFiles.map(({ path }) => basename(path)));
for (const name of readdirSync(TARGET)) if (!current.has(name)) rmSync(TARGET + name);
