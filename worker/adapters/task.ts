/** Reads and checks the exports `task`, what the model does, and `tokenInput`. */
import { TASKS, type Task } from '../../protocol/wire/messages.js';
import { shown } from '../../protocol/values/tensor.js';

/** The app's task, if it exports one. @throws a TypeError if it is none that this server knows */
export function taskOf(exports: Readonly<Record<string, unknown>>): { task?: Task; tokenInput?: true } {
  const { task: given, tokenInput } = exports;
  if (given === undefined) return {};
  const task = TASKS.find((one) => one === given);
  if (task === undefined)
    throw new TypeError(`export \`task\` is ${shown(given)}; there are ${TASKS.join(', ')}`);
  return tokenInput === true ? { task, tokenInput } : { task };
}
