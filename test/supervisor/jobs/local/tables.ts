/** Local stores of jobs whose table is in this thread, so that a mocked clock counts for it too. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import type { KeepLimits } from '../../../../supervisor/jobs/job-store.js';
import { LocalStore } from '../../../../supervisor/jobs/local/local-store.js';
import type { OpenPort } from '../../../../supervisor/jobs/local/table-link.js';
import { TableLoop, type TableNews } from '../../../../supervisor/jobs/local/table-loop.js';

const folders: string[] = [];
process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A new folder, which is removed when this process ends. */
export function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'banana-jobs-'));
  folders.push(folder);
  return folder;
}

/** The files as a kill of the process would leave them now. */
export function copyOf(folder: string): string {
  const copy = scratch();
  cpSync(folder, copy, { recursive: true });
  return copy;
}

/** Opens the table in this thread. */
export function openTable(
  folder: string,
  limits: KeepLimits,
  isFirst = true,
  tell: (news: TableNews) => void = () => {},
): TableLoop {
  return new TableLoop(DatabaseSync, { folder, limits, isFirst }, tell);
}

export function inThisThread(folder: string, limits: KeepLimits): OpenPort {
  return (isFirst, onNews) => {
    const loop = openTable(folder, limits, isFirst, (news) => onNews(structuredClone(news)));
    return Promise.resolve({
      opened: structuredClone(loop.opened),
      post: (calls) => {
        const copy = structuredClone(calls);
        queueMicrotask(() => loop.run(copy));
      },
      close: () => Promise.resolve(loop.close()),
    });
  };
}

export function openHere(folder: string, limits: KeepLimits): Promise<LocalStore> {
  return LocalStore.open(folder, limits, inThisThread(folder, limits));
}
