/** The interpreter of the Python cases, and the Python servers that ours is held against. */
import { source, startChildServer, type ChildServer } from './child-server.js';

/** It has Debian's python3-fastapi, python3-uvicorn, python3-uvloop, python3-httptools, python3-flask and python3-torch. */
export const PYTHON = process.env['BENCH_PYTHON'] ?? '/usr/bin/python3';

/** Flags of our server for the same interpreter. */
export const PYTHON_FLAGS: readonly string[] = ['--python', PYTHON];

export type PythonServer = 'fastapi-def' | 'fastapi-async' | 'fastapi-bytes' | 'flask' | 'flask-bytes';

export const PYTHON_SERVER_NAMES: Readonly<Record<PythonServer, string>> = {
  'fastapi-def': 'FastAPI, def',
  'fastapi-async': 'FastAPI, async def',
  'fastapi-bytes': 'FastAPI, bytes',
  flask: "Flask's development server",
  'flask-bytes': "Flask's development server, bytes",
};

export async function startPythonServer(kind: PythonServer, app: string): Promise<ChildServer> {
  return startChildServer([source('bench/servers/python_baseline.py'), kind, app], {}, PYTHON);
}
