/** The texts of `--help`: the main options and the examples; of `--help-all`: all that is left. */
import { envName, type OptionName } from '../options/table.js';
import { EXIT_CODES } from './server-process.js';

/** Options in the short help: those of README's table, and `--watch`. */
export const MAIN_OPTIONS: readonly OptionName[] = [
  'port',
  'host',
  'workers',
  'gpus',
  'workersPerGpu',
  'runTimeout',
  'initTimeout',
  'queueSize',
  'queueBytes',
  'queueTimeout',
  'maxBody',
  'maxOutput',
  'drainTimeout',
  'apiKey',
  'watch',
];

export const SHORT_FLAGS: Partial<Readonly<Record<OptionName, string>>> = { port: '-p', workers: '-w' };

const EXAMPLES = `
Examples:
  banana-serve new my-model                            a project to begin with; new --python for one in Python
  banana-serve ./app.ts --watch                        while you write it
  banana-serve ./model.onnx                            a model without code
  banana-serve ./app.ts --workers 4 --run-timeout 30s  four processes, 30 seconds for a call
  banana-serve --model a=./a.ts --model b=./b.ts       two models on one port
`;

const REST = `
banana-serve --help-all prints the other options, docs/options.md explains them.
`;

/** The text after the options. */
export function helpTail(isShort: boolean): string {
  return EXAMPLES + (isShort ? REST : wholeTail());
}

function wholeTail(): string {
  const codes = Object.values(EXIT_CODES).map(
    ({ code, meaning }) => `  ${String(code).padStart(3)}  ${meaning}`,
  );
  return `
Every option is also an environment variable (${envName('runTimeout')}=30s), a key of banana.json or of "banana" in
package.json ("runTimeout": "30s"); options of a model may also be in the app's \`config\` export.
Flags take precedence over the environment, the environment over files, files over the app.

Exit codes:
${codes.join('\n')}
`;
}
