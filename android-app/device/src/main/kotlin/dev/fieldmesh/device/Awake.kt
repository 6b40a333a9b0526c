package dev.fieldmesh.device

import android.content.Context
import android.os.PowerManager
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.collectLatest

/** What a run asks of the processor. */
enum class Need { NOTHING, NEXT_TRIAL, TRIAL }

/**
 * Keeps the processor running while a trial is under way, and between two of a run: the next one may begin at any
 * moment. With the screen off it sleeps between the receiver's fixes otherwise, and nothing is said in time.
 */
class Awake(context: Context) {
    private val lock = context.getSystemService(PowerManager::class.java)
        .newWakeLock(PowerManager.PARTIAL_WAKE_LOCK, "fieldmesh:trial").apply { setReferenceCounted(false) }
    private val held = MutableStateFlow(false)

    /** Whether the processor is kept running. */
    val isHeld: StateFlow<Boolean> = held.asStateFlow()

    /**
     * Follows what is needed. A trial is waited for however long it takes, the next one for [NEXT_MS]: a run that
     * people have left must not empty the battery.
     */
    suspend fun follow(needed: Flow<Need>) = needed.collectLatest { need ->
        held.value = need != Need.NOTHING
        if (need == Need.NEXT_TRIAL) {
            lock.acquire(NEXT_MS)
            delay(NEXT_MS)
        }
        while (need == Need.TRIAL) {
            lock.acquire(MOST_MS)
            delay(RENEW_MS)
        }
        if (lock.isHeld) lock.release()
        held.value = false
    }

    private companion object {
        /** The lock goes after it when the app does not renew it. */
        const val MOST_MS = 600_000L
        const val RENEW_MS = MOST_MS / 2

        /** What the report takes for the end of a session. */
        const val NEXT_MS = 1_800_000L
    }
}
