/** The platforms that onnxruntime-node has binaries for. */
import { closeSync, openSync, readSync } from 'node:fs';

export interface Platform {
  readonly os: NodeJS.Platform;
  readonly arch: string;
  /** Whether this Node is linked with musl, as in Alpine Linux. */
  readonly isMusl: boolean;
}

/** The platform of this process. */
export function ownPlatform(): Platform {
  const { platform: os, arch } = process;
  return { os, arch, isMusl: os === 'linux' && isLinkedWithMusl() };
}

/** Says what is missing and what to do instead; null for a platform that has binaries. */
export function problemOfPlatform({ os, arch, isMusl }: Platform): string | null {
  if (isMusl)
    return 'onnxruntime-node has no binaries for musl, the C library of Alpine Linux. Use an image with glibc, such as node:24-slim.';
  if (BINARIES.includes(`${os} ${arch}`)) return null;
  const what = os === 'darwin' ? 'Macs with Intel processors' : `${os} on ${arch}`;
  return `onnxruntime-node has no binaries for ${what}. Serve it on Linux (x64, arm64) or on a Mac with an Apple processor.`;
}

const BINARIES = ['linux x64', 'linux arm64', 'darwin arm64', 'win32 x64', 'win32 arm64'];

/** Reads the program's head, which names its loader. */
function isLinkedWithMusl(): boolean {
  const head = Buffer.alloc(HEAD_BYTES);
  const file = openSync(process.execPath, 'r');
  try {
    return head.subarray(0, readSync(file, head)).includes('/ld-musl-');
  } finally {
    closeSync(file);
  }
}

const HEAD_BYTES = 4096;
