package dev.fieldmesh.device

import android.content.Context
import android.os.PowerManager

/**
 * Keeps the processor running while a trial is under way. With the screen off it sleeps between the receiver's fixes
 * otherwise, and nothing is said in time.
 */
class Awake(context: Context) {
    private val lock = context.getSystemService(PowerManager::class.java)
        .newWakeLock(PowerManager.PARTIAL_WAKE_LOCK, "fieldmesh:trial").apply { setReferenceCounted(false) }

    /** The lock goes by itself after [MOST_MS], however the app ends. */
    fun keep(on: Boolean) {
        if (on) {
            lock.acquire(MOST_MS)
        } else if (lock.isHeld) {
            lock.release()
        }
    }

    private companion object {
        const val MOST_MS = 3_600_000L
    }
}
