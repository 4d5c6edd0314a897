/** A V8 CPU profile as self times, by function and by area of code. */

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
}

interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

export interface SelfTimes {
  readonly idleUs: number;
  readonly busyUs: number;
  /** Only busy time is counted; the largest comes first. */
  readonly byFunction: [name: string, us: number][];
  readonly byArea: [name: string, us: number][];
}

export function readProfile(text: string): SelfTimes {
  const { nodes, samples, timeDeltas } = JSON.parse(text) as CpuProfile;
  const nodesById = new Map(nodes.map((node) => [node.id, node]));
  const byFunction = new Map<string, number>();
  const byArea = new Map<string, number>();
  let idleUs = 0;
  let busyUs = 0;
  for (const [i, id] of samples.entries()) {
    const node = nodesById.get(id) as ProfileNode;
    // A delta is the time since the sample before; the function seen now is taken to have filled it.
    const us = timeDeltas[i] ?? 0;
    if (node.callFrame.functionName === '(idle)') {
      idleUs += us;
      continue;
    }
    busyUs += us;
    add(byFunction, nameOf(node), us);
    add(byArea, areaOf(node), us);
  }
  return { idleUs, busyUs, byFunction: largestFirst(byFunction), byArea: largestFirst(byArea) };
}

function nameOf({ callFrame: { functionName, url, lineNumber } }: ProfileNode): string {
  const name = functionName === '' ? '(anonymous)' : functionName;
  return url === '' ? name : `${name}  ${shortUrl(url)}:${lineNumber + 1}`;
}

/** `(garbage collector)`, `native` (built-ins and system calls), a package, a folder of ours, or a part of Node. */
function areaOf({ callFrame: { functionName, url } }: ProfileNode): string {
  if (url === '') return functionName.startsWith('(') ? functionName : 'native functions';
  const short = shortUrl(url);
  if (short.startsWith('node:'))
    return `Node: ${short.split('/').slice(0, 2).join('/').replace('node:', '')}`;
  const parts = short.split('/');
  return parts[0] === 'node_modules'
    ? `package ${parts.slice(1, parts[1]?.startsWith('@') ? 3 : 2).join('/')}`
    : parts.slice(0, 2).join('/');
}

/** The part of a path from its last `node_modules`, or from `dist` or `bench`, on. */
function shortUrl(url: string): string {
  const start = Math.max(
    url.lastIndexOf('/node_modules/'),
    url.lastIndexOf('/dist/'),
    url.lastIndexOf('/bench/apps/'),
  );
  return start < 0 ? url : url.slice(start + 1);
}

function add(totals: Map<string, number>, key: string, us: number): void {
  totals.set(key, (totals.get(key) ?? 0) + us);
}

function largestFirst(totals: ReadonlyMap<string, number>): [string, number][] {
  return [...totals].sort(([, a], [, b]) => b - a);
}
