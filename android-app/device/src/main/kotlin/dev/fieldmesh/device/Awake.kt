package dev.fieldmesh.device

import android.content.Context
import android.os.PowerManager
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.collectLatest

/**
 * Keeps the processor running while a trial is under way. With the screen off it sleeps between the receiver's fixes
 * otherwise, and nothing is said in time.
 */
class Awake(context: Context) {
    private val lock = context.getSystemService(PowerManager::class.java)
        .newWakeLock(PowerManager.PARTIAL_WAKE_LOCK, "fieldmesh:trial").apply { setReferenceCounted(false) }

    /** Follows what is [wanted], however long a trial takes. Without renewal the lock goes after [MOST_MS]. */
    suspend fun follow(wanted: Flow<Boolean>) = wanted.collectLatest { on ->
        while (on) {
            lock.acquire(MOST_MS)
            delay(RENEW_MS)
        }
        if (lock.isHeld) lock.release()
    }

    private companion object {
        const val MOST_MS = 600_000L
        const val RENEW_MS = MOST_MS / 2
    }
}
