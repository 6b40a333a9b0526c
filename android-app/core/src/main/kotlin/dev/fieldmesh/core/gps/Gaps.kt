package dev.fieldmesh.core.gps

import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.transformLatest

/** After this long without a fix the receiver has none. */
const val GAP_MS = 2000L

/**
 * Tells a receiver's silence as what it is: fixes without a position, one a
 * [GAP_MS], until the next fix comes. Receivers on phones do not tell a loss
 * by themselves; their last fix would pass for the present one.
 */
@OptIn(kotlinx.coroutines.ExperimentalCoroutinesApi::class)
fun Flow<Fix>.withGaps(nowNs: () -> Long): Flow<Fix> = transformLatest { fix ->
    emit(fix)
    while (true) {
        delay(GAP_MS)
        emit(Fix.none(nowNs()))
    }
}
