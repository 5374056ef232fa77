/** A gate that clients wait at while the server is known to be down. */

export interface Gate {
  open(): void;
  close(): void;
  /** Resolves at once while the gate is open. */
  passed(): Promise<void>;
}

export function createGate(): Gate {
  let openNow: () => void = () => undefined;
  let opened: Promise<void> = Promise.resolve();
  return {
    open: () => openNow(),
    close() {
      openNow();
      opened = new Promise((resolve) => {
        openNow = resolve;
      });
    },
    passed: () => opened,
  };
}
