/** Whether the engine of this page answers at all, in whatever state it is. */

const PATIENCE_MS = 5_000;

export function isEngineThere(): Promise<boolean> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  return fetch(document.baseURI, { method: 'HEAD', cache: 'no-store', signal }).then(
    ({ ok }) => ok,
    () => false,
  );
}
