/** Loads apps in a process of its own and prints what came of each as JSON. */
import { loadApp } from '../../../worker/load/load-app.js';
import type { CallInfo } from '../../../worker/api/types.js';

async function outcomeOf(path: string): Promise<unknown> {
  try {
    const app = await loadApp({ app: path, device: { gpu: null, threads: 1 }, batchSize: 0 });
    const output: unknown = await app.handle('/', 'in', {} as CallInfo);
    return { output, modelOptions: app.description.modelOptions };
  } catch (error) {
    const { name, message } = error as Error;
    return { name, message };
  }
}

const outcomes: unknown[] = [];
for (const path of process.argv.slice(2)) outcomes.push(await outcomeOf(path));
process.stdout.write(JSON.stringify(outcomes));
