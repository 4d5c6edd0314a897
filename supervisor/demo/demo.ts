/**
 * `banana-serve demo`: the same model inside a program, and as a function of one. Both go through the same script, each step on
 * the left and then on the right, so that they do not take each other's cores; a table at the end has what was measured.
 */
import { Command } from 'commander';
import { constants } from 'node:os';
import { runCommand } from '../command/own-command.js';
import { Program } from './demo-program.js';
import { STEPS, type Column, type Step } from './steps.js';

const WIDTH = 38;

const CODE: readonly (readonly [left: string, right: string])[] = [
  ['in the program', 'supervise()'],
  ['', ''],
  ['import { inference, init }', "import { supervise } from 'banana-serve';"],
  ["  from './model.mjs';", 'const inference ='],
  ['await init();', "  await supervise('./model.mjs');"],
];

const LEGEND = '/health is answered . at once  o within 100 ms  O later  x not at all';

/** `args`: arguments without the command's name. Resolves with the exit code. */
export function runDemo(name: string, args: readonly string[]): Promise<number> {
  const command = new Command(name).description(
    'Shows the same model inside a program and as its function, in under a minute: batches, too little memory, kill -9.',
  );
  return runCommand(command, args, async () => {
    const show = process.stdout.isTTY ? (text: string) => void process.stdout.write(text) : () => {};
    const programs: readonly Program[] = ['in-process.mjs', 'supervised.mjs'].map(
      (file) => new Program(file),
    );
    endWithThis(programs);
    show(`\n${CODE.map(([left, right]) => `  ${left.padEnd(WIDTH)}  ${right}\n`).join('')}\n${LEGEND}\n`);
    const columns: [Column, Column] = [{}, {}];
    for (const step of STEPS) {
      show(`\n${step.title}\n`);
      for (const [i, program] of programs.entries())
        columns[i] = { ...columns[i], ...(await runOn(program, step, show)) };
      show('\n');
    }
    for (const program of programs) program.end();
    process.stdout.write(tableOf(columns));
  });
}

/** However this process ends, by Ctrl-C too, the programs end, and their workers with them. */
function endWithThis(programs: readonly Program[]): void {
  process.on('exit', () => {
    for (const program of programs) program.end();
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
}

/** Shows what happens in a column. */
async function runOn(program: Program, step: Step, show: (text: string) => void): Promise<Column> {
  let used = 0;
  show('  ');
  const column = await step.run(program, (text) => {
    if (used + text.length > WIDTH) return;
    used += text.length;
    show(text);
  });
  show(' '.repeat(WIDTH - used));
  return column;
}

function tableOf([left, right]: readonly [Column, Column]): string {
  const [titles = ['', '']] = CODE;
  const titlesOfRows = Object.keys(left);
  const rows = titlesOfRows.map((row) => [row, left[row]?.text, right[row]?.text]);
  const line = ([title = '', ...texts]: readonly (string | undefined)[]): string =>
    `${title.padEnd(WIDTH)}${texts.map((text = '') => text.padStart(16)).join('')}\n`;
  const lost = titlesOfRows.filter((row) => (left[row]?.value ?? 0) < (right[row]?.value ?? 0));
  const losses = lost.map((row) => `  ${row}: ${right[row]?.text} instead of ${left[row]?.text}\n`);
  return `
${[['', ...titles], ...rows].map(line).join('')}
supervise() loses these rows, because a call goes to another process, which must be there:
${losses.join('')}`;
}
