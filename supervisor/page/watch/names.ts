/** Models and deaths in words. */
import type { LiveDeath, LiveModel } from '../../status/live-types.js';

/** `digits`, or `digits 2` if there are several versions. */
export function modelName(
  { name, version }: { readonly name: string; readonly version: string },
  all: readonly LiveModel[],
): string {
  return all.filter((other) => other.name === name).length > 1 ? `${name} ${version}` : name;
}

/** In a sentence: during what it died, and a likely reason. */
export function deathText({ during, requestId, hint, cause }: LiveDeath): string {
  const doing = {
    start: 'It was starting.',
    idle: 'It was idle.',
    call:
      requestId === ''
        ? 'It was running a call.'
        : `It was running the call ${requestId}, which got SERVE_WORKER_LOST.`,
  }[during];
  const likely =
    hint === '' ? (cause === 'out of memory' ? 'It ran out of memory.' : '') : `${capital(hint)}.`;
  return [doing, likely].filter((part) => part !== '').join(' ');
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
