/** Signals a process that was started `detached`, and what it has started in its group. One that is gone is no error. */
export function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // EPERM: only zombies are left of the group (macOS), or it took another user's rights. Neither can be mended here,
    // and the server must not fall over it.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}
