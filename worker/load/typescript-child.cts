/**
 * Preloaded (`--require`) into the Node processes that an app in TypeScript starts: lets Node run a file in TypeScript as
 * the worker runs the app. It is CommonJS, because `--import` would change how Node loads every other program.
 */
/* eslint-disable @typescript-eslint/no-require-imports -- the way of CommonJS */
import Module = require('node:module');
import path = require('node:path');
import url = require('node:url');
import threads = require('node:worker_threads');

/** Node calls `runMain` through this object, so that preloaded modules may replace it; `_load` is what it calls then. */
const node = Module as unknown as {
  runMain: () => void;
  _load: (file: string, parent: null, isMain: true) => unknown;
};
const [, file = ''] = process.argv;

if (threads.isMainThread && /\.[mc]?ts$/.test(file)) {
  const { runMain } = node;
  // Outside the promise: what the file throws is an uncaught exception.
  node.runMain = () => void loadTypeScript().then(() => setImmediate(() => run(runMain)));
}

async function loadTypeScript(): Promise<void> {
  const { registerTypeScript } = await import('./register-typescript.js');
  await registerTypeScript(path.dirname(file));
}

/** Node 20 decides by the package alone which of its loaders gets a file in TypeScript. */
function run(runMain: () => void): void {
  if (file.endsWith('.mts')) void import(url.pathToFileURL(file).href);
  else if (file.endsWith('.cts')) node._load(file, null, true);
  else runMain();
}
