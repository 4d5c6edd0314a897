/** Writes the file of `--ready-file`, by which a program that starts the server learns that it is ready, and its addresses. */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { ServeError, describeThrown } from '../../protocol/errors.js';
import type { Log } from '../observe/log.js';
import type { Closing } from './host/closing.js';
import type { Addresses } from '../status/banner.js';

/**
 * Removes the file of an earlier server, and proves that one can be written; removes it at the end. Returns what writes the
 * addresses. @throws SERVE_CONFIG
 */
export function prepareReadyFile(
  path: string,
  closing: Pick<Closing, 'onClose'>,
  log: Pick<Log, 'error'>,
): (addresses: Omit<Addresses, 'socketPath'>) => void {
  const unfinished = `${path}.unfinished`;
  const remove = (): void => [path, unfinished].forEach((file) => rmSync(file, { force: true }));
  const textOf = (thrown: unknown): string =>
    `--ready-file cannot be written: ${describeThrown(thrown).message}`;
  try {
    remove();
    writeFileSync(unfinished, '');
  } catch (cause) {
    throw new ServeError('SERVE_CONFIG', textOf(cause), { cause });
  }
  closing.onClose(remove);
  return ({ url, managementUrl, metricsUrl }) => {
    const facts = { url, managementUrl, metricsUrl, pid: process.pid };
    try {
      writeFileSync(unfinished, `${JSON.stringify(facts)}\n`);
      renameSync(unfinished, path); // a reader never finds a part of the addresses
    } catch (cause) {
      log.error(textOf(cause));
    }
  };
}
