/** Loads a package that only one backend needs, when that backend is first used. */
export async function loadPackage<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    const code = (cause as { code?: unknown } | null)?.code;
    const why = typeof code === 'string' ? ` (${code})` : '';
    throw new Error(
      `This store needs the package ${name}, which cannot be loaded${why}. Run: npm install ${name}`,
      {
        cause,
      },
    );
  }
}
