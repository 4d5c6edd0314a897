/** The imports of the worker in Python: between its rooms they run one way, and no files import each other in a circle. */

/** The rooms of worker/python, from the entry down: each may import those below it and none above. */
export const PYTHON_ROOMS: readonly string[] = [
  'banana_worker/__main__.py',
  'banana_worker/main.py',
  'banana_worker/load',
  'banana_serve',
  'potassium/__init__.py',
  'potassium/potassium.py',
  'potassium/test_client',
  'banana_worker/adapters',
  'potassium',
  'banana_worker/run',
  'banana_worker/reply',
  'banana_worker/formats',
  'ts',
  'mms',
  'banana_worker/report',
  'banana_worker/values',
  'banana_worker/process',
  'banana_worker/failures',
  'banana_worker/protocol',
  'banana_worker/text',
  'banana_worker/stand_in.py',
  'banana_worker/in_worker.py',
  'banana_worker/standard_modules.py',
  'banana_worker/__init__.py',
];

/** The sources of files by their paths from worker/python. */
export type Sources = ReadonlyMap<string, string>;

/** A line for each import that runs up, each file outside the rooms, and the first circle. */
export function importProblems(sources: Sources): string[] {
  const homeless = [...sources.keys()].filter((path) => roomOf(path) === undefined);
  return [
    ...homeless.map((path) => `${path} is in none of PYTHON_ROOMS (test/tools/python-imports.ts)`),
    ...[...sources.keys()].flatMap((path) => importsUp(path, sources)),
    ...circleProblems(sources),
  ];
}

function importsUp(path: string, sources: Sources): string[] {
  const own = roomOf(path) ?? '';
  return importsOf(path, sources).flatMap((target) => {
    const other = roomOf(target) ?? '';
    const isUp = PYTHON_ROOMS.indexOf(other) < PYTHON_ROOMS.indexOf(own);
    return isUp ? [`${path} imports ${target}: ${own} stands below ${other} (PYTHON_ROOMS)`] : [];
  });
}

/** The room that names the file most exactly. */
function roomOf(path: string): string | undefined {
  const around = PYTHON_ROOMS.filter((room) => path === room || path.startsWith(`${room}/`));
  return around.sort((a, b) => b.length - a.length)[0];
}

function circleProblems(sources: Sources): string[] {
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]): readonly string[] | null => {
    if (way.includes(path)) return [...way.slice(way.indexOf(path)), path];
    if (done.has(path)) return null;
    done.add(path);
    for (const next of importsOf(path, sources)) {
      const circle = visit(next, [...way, path]);
      if (circle !== null) return circle;
    }
    return null;
  };
  for (const path of sources.keys()) {
    const circle = visit(path, []);
    if (circle !== null) return [`imports in a circle: ${circle.join(' -> ')}`];
  }
  return [];
}

const FROM = /^[ \t]*from (\.*)([\w.]*) import (?:\(([^)]*)\)|([^\n#]*))/gm;
const PLAIN = /^[ \t]*import ([\w.]+(?:, [\w.]+)*)/gm;
const LATE = /\bimport_standard\("([\w.]+)"\)/g;

/** The files of ours that a file imports, wherever in it: at its top, in a function, or for the type checker alone. */
function importsOf(path: string, sources: Sources): string[] {
  const source = sources.get(path) ?? '';
  const found = [
    ...[...source.matchAll(FROM)].flatMap(([, dots = '', name = '', inBraces, inLine]) => {
      const module = [...folderOf(path, dots.length), ...name.split('.').filter((part) => part !== '')];
      return namesIn(inBraces ?? inLine ?? '').map(
        (each) => fileOf([...module, each], sources) ?? fileOf(module, sources),
      );
    }),
    ...[...source.matchAll(PLAIN), ...source.matchAll(LATE)].flatMap(([, names = '']) =>
      names.split(', ').map((name) => fileOf(name.split('.'), sources)),
    ),
  ];
  return [...new Set(found)].filter((target): target is string => target !== undefined && target !== path);
}

/** The folder that so many dots before a module's name mean. */
function folderOf(path: string, dots: number): string[] {
  return dots === 0 ? [] : path.split('/').slice(0, -dots);
}

function namesIn(list: string): string[] {
  return [...list.matchAll(/(?:^|,)\s*(\w+)/g)].map(([, name = '']) => name);
}

function fileOf(module: readonly string[], sources: Sources): string | undefined {
  const path = module.join('/');
  return [`${path}.py`, `${path}/__init__.py`].find((file) => sources.has(file));
}
