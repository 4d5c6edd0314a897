/**
 * The runner preloads this module in each process of tests. It appends a line of JSON, a `FileTime`, to the file that
 * `BANANA_TEST_TIMES` names: when the process ends, and for each file of a shared process.
 */
import { appendFileSync, readFileSync } from 'node:fs';

export interface FileTime {
  /** Absolute path of the compiled test file; that of a shared process has the rest: its start, and its imports. */
  readonly file: string;
  /** User and system time of the test file's process and, on Linux, of the children that it has waited for. */
  readonly cpuSeconds: number;
  readonly wallSeconds: number;
}

/** Linux counts the times in `/proc/PID/stat` in hundredths of a second on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Positions of cutime and cstime in `/proc/PID/stat`, counted from the field behind the name. */
const CHILDREN_USER = 13;
const CHILDREN_SYSTEM = 14;

const { BANANA_TEST_TIMES: timesFile, NODE_TEST_CONTEXT: context } = process.env;
// `node --test` itself loads this module too, without a context, and passes the variable on to the test files.
if (timesFile !== undefined && context !== undefined) {
  // Processes that the test starts do not inherit it.
  delete process.env['BANANA_TEST_TIMES'];
  process.on('exit', () => noteFile(timeOfThisProcess()));
}

/** CPU that files of this process have been noted with. */
let notedCpuSeconds = 0;

export function noteFile(time: FileTime): void {
  if (timesFile === undefined) return;
  notedCpuSeconds += time.cpuSeconds;
  appendFileSync(timesFile, `${JSON.stringify(time)}\n`);
}

function timeOfThisProcess(): FileTime {
  return {
    file: process.argv[1] ?? '',
    cpuSeconds: cpuSeconds() - notedCpuSeconds,
    wallSeconds: process.uptime(),
  };
}

/** Time of this process, and of the children that it has waited for. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + childrenCpuSeconds();
}

/** Time of the children that have ended and were waited for, their own included; 0 where there is no `/proc`. */
function childrenCpuSeconds(): number {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[CHILDREN_USER]) + Number(fields[CHILDREN_SYSTEM])) / TICKS_PER_SECOND;
  } catch {
    return 0;
  }
}
