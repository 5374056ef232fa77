/** Short news of what was done, read out by screen readers, that goes away by itself. */

import {
  createContext,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useRef,
  useState,
} from 'react';
import styles from './toasts.module.css';

interface Toast {
  readonly id: number;
  readonly text: ReactNode;
  readonly isFailure: boolean;
}

type Tell = (text: ReactNode, options?: { isFailure?: boolean }) => void;

const SHOWN_MS = 6000;

const ToastContext = createContext<Tell>(() => undefined);

export function useToast(): Tell {
  return useContext(ToastContext);
}

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const lastId = useRef(0);
  const tell = useCallback<Tell>((text, options = {}) => {
    lastId.current += 1;
    const toast = { id: lastId.current, text, isFailure: options.isFailure ?? false };
    setToasts((before) => [...before, toast]);
  }, []);
  const remove = useCallback((id: number) => {
    setToasts((before) => before.filter((toast) => toast.id !== id));
  }, []);
  return (
    <ToastContext value={tell}>
      {children}
      <div className={styles.toasts} role="status" aria-live="polite">
        {toasts.map((toast) => (
          <ToastView key={toast.id} toast={toast} onEnd={remove} />
        ))}
      </div>
    </ToastContext>
  );
}

function ToastView({ toast, onEnd }: { toast: Toast; onEnd: (id: number) => void }) {
  const { id } = toast;
  useEffect(() => {
    const timer = setTimeout(() => onEnd(id), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [id, onEnd]);
  return (
    <div className={toast.isFailure ? `${styles.toast} ${styles.danger}` : styles.toast}>
      {toast.text}
    </div>
  );
}
