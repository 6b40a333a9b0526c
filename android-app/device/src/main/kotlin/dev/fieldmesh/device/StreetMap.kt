package dev.fieldmesh.device

import android.content.ContentResolver
import android.content.Intent
import android.net.Uri
import android.os.ParcelFileDescriptor
import dev.fieldmesh.core.map.MapException
import dev.fieldmesh.core.map.MapFault
import dev.fieldmesh.core.map.PmTiles
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.withContext
import java.io.IOException

sealed interface MapState {
    data object None : MapState

    data object Opening : MapState

    class Open(val tiles: PmTiles) : MapState

    class Failed(val fault: MapFault) : MapState
}

/**
 * The map that a person chose. It is read where it lies, since a copy would take its room twice; Android lets the app
 * read it until it is moved or deleted, or another is chosen.
 */
class StreetMap(
    private val resolver: ContentResolver,
    private val preferences: Preferences,
    private val worker: CoroutineDispatcher,
) {
    private val now = MutableStateFlow<MapState>(MapState.None)
    val state: StateFlow<MapState> = now

    /** Takes another map, or none. */
    suspend fun choose(uri: Uri?) {
        val former = preferences.map
        preferences.map = uri?.toString()
        if (uri != null) mayRead(uri, isTo = true)
        if (former != null && former != uri?.toString()) mayRead(Uri.parse(former), isTo = false)
        (now.value as? MapState.Open)?.tiles?.close()
        now.value = MapState.None
        open()
    }

    /** Opens the map that was chosen; again, if that failed. */
    suspend fun open() {
        val uri = preferences.map ?: return
        if (now.value is MapState.Open) return
        now.value = MapState.Opening
        now.value = withContext(NonCancellable + worker) { opened(Uri.parse(uri)) }
    }

    private fun mayRead(uri: Uri, isTo: Boolean) = try {
        val flag = Intent.FLAG_GRANT_READ_URI_PERMISSION
        if (isTo) {
            resolver.takePersistableUriPermission(
                uri,
                flag,
            )
        } else {
            resolver.releasePersistableUriPermission(uri, flag)
        }
    } catch (_: SecurityException) {
        // Whoever has the file lets it be read for now only.
    }

    private fun opened(uri: Uri): MapState = try {
        MapState.Open(read(uri))
    } catch (e: MapException) {
        MapState.Failed(e.fault)
    } catch (_: IOException) {
        MapState.Failed(MapFault.UNREADABLE)
    } catch (_: SecurityException) {
        MapState.Failed(MapFault.UNREADABLE)
    }

    private fun read(uri: Uri): PmTiles {
        val file = resolver.openFileDescriptor(uri, "r") ?: throw IOException("its app has ended")
        val channel = ParcelFileDescriptor.AutoCloseInputStream(file).channel
        var isMap = false
        try {
            // What comes over a network cannot be read here and there.
            if (file.statSize < 0) throw IOException("it is no file on this phone")
            return PmTiles(channel).also { isMap = true }
        } finally {
            if (!isMap) channel.close()
        }
    }
}
