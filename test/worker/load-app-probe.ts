/** Loads an app in a process of its own and prints what came of it as one line of JSON. */
import { loadApp } from '../../worker/load-app.js';
import type { InferenceContext } from '../../worker/api/types.js';

const path = process.argv[2] as string;
try {
  const app = await loadApp(path);
  const output: unknown = await app.handle('/', 'in', {} as InferenceContext);
  process.stdout.write(JSON.stringify({ output, modelOptions: app.modelOptions }));
} catch (error) {
  const { name, message } = error as Error;
  process.stdout.write(JSON.stringify({ name, message }));
}
