/**
 * Runs scripts of package.json side by side, as many as there are cores: `node dist/test/tools/side-by-side.js SCRIPT...`.
 * The output of each is printed when it ends. Fails if one of them fails.
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { ROOT } from '../helpers/server.js';

const AT_ONCE = Math.max(2, availableParallelism());

async function main(): Promise<number> {
  const waiting = process.argv.slice(2);
  if (waiting.length === 0) throw new Error('name the scripts');
  const failed: string[] = [];
  const runNext = async (): Promise<void> => {
    for (let script = waiting.shift(); script !== undefined; script = waiting.shift()) {
      const startedAtMs = performance.now();
      const { output, isGood } = await run(script);
      const seconds = Math.round((performance.now() - startedAtMs) / 1000);
      process.stdout.write(`== ${script}, ${seconds} s\n${output}`);
      if (!isGood) failed.push(script);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, runNext));
  if (failed.length > 0) process.stdout.write(`== failed: ${failed.join(', ')}\n`);
  return failed.length === 0 ? 0 : 1;
}

function run(script: string): Promise<{ output: string; isGood: boolean }> {
  const child = spawn('npm', ['run', '--silent', script], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ output, isGood: code === 0 }));
  });
}

process.exitCode = await main();
