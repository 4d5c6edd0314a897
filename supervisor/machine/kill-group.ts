/** Sends a signal to the group of a process that was started `detached`. A group that has ended is not an error. */
export function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // EPERM: only zombies are left in the group (macOS), or it runs as another user now. Neither can be mended here, and
    // the server must not fail because of it.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}
