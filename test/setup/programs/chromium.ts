/** Whether Debian's chromium is here. */
import { execFileSync } from 'node:child_process';

export const hasChromium = (() => {
  try {
    execFileSync('chromium', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();
