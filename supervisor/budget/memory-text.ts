/** Says in words what memory a start waits for, and why a worker leaves or cannot start. */
import { ServeError } from '../../protocol/errors.js';
import { formatBytes, formatMs } from '../options/units.js';
import { MEMORY, type Holder, type Lack, type LeaveWhy, type RefuseWhy } from './facts.js';

/** `needs 310 MB; 1.8 GB of --memory-budget 2 GB are used: a (1.2 GB), b (600 MB)` */
export function lackText(lack: Lack, holders: readonly Holder[]): string {
  const { needBytes } = lack;
  const need = needBytes === null ? 'needs memory' : `needs ${bytes(needBytes)}`;
  return `${need}; ${usedText(lack)}${holders.length === 0 ? '' : `: ${holdersText(holders)}`}`;
}

export function leaveText(why: LeaveWhy): string {
  const { rule, forModel, needBytes, ms } = why;
  if (forModel === null) return `${usedText(why)}${rule === 'memory' ? '' : ', and its turn is over'}`;
  const need = needBytes === null ? '' : ` of ${bytes(needBytes)}`;
  const who = `a start${need} of ${forModel}`;
  return rule === 'memory'
    ? `${who} needs its memory, idle for ${formatMs(ms)}; ${usedText(why)}`
    : `${who} has waited ${formatMs(ms)} for its memory; ${usedText(why)}`;
}

/** The error of a worker that will never have the memory that it needs. */
export function refusalError(why: RefuseWhy): ServeError {
  const flag = flagOf(why.pool);
  const limit = `${flag} ${bytes(why.limitBytes)}${why.pool === MEMORY ? '' : ` on ${why.pool}`}`;
  const detail =
    why.rule === 'alone'
      ? `its worker holds ${bytes(why.bytes)}, and ${limit} is all that there is; raise ${flag}`
      : `${heldText(why)}, which always stay, need ${bytes(why.bytes)} together, and ${limit} is all that there is; raise ${flag}, or let models start when they are called (--min-workers 0)`;
  return new ServeError('SERVE_APP_INVALID', undefined, { detail, kind: 'out-of-memory' });
}

function flagOf(pool: string): string {
  return pool === MEMORY ? '--memory-budget' : '--gpu-memory-budget';
}

function heldText({ holders, needBytes }: RefuseWhy): string {
  const held = holders.length === 0 ? 'its workers' : `the workers of ${holdersText(holders)}`;
  return needBytes === null || holders.length === 0 ? held : `${held} and a new one (${bytes(needBytes)})`;
}

function usedText({ pool, usedBytes, limitBytes }: Lack): string {
  const where = pool === MEMORY ? '' : ` on ${pool}`;
  return `${bytes(usedBytes)} of ${flagOf(pool)} ${bytes(limitBytes)} are used${where}`;
}

function holdersText(holders: readonly Holder[]): string {
  return holders.map((holder) => `${holder.model} (${bytes(holder.bytes)})`).join(', ');
}

function bytes(value: number): string {
  return formatBytes(Math.round(value));
}
