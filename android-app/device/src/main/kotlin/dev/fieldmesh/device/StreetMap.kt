package dev.fieldmesh.device

import android.content.ContentResolver
import android.content.Intent
import android.net.Uri
import android.os.ParcelFileDescriptor
import dev.fieldmesh.core.map.Look
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
 * read it until it is moved or deleted, or another is chosen. Called on the main thread; what reads runs on [worker].
 */
class StreetMap(
    private val resolver: ContentResolver,
    private val preferences: Preferences,
    private val worker: CoroutineDispatcher,
) {
    private val now = MutableStateFlow<MapState>(MapState.None)
    val state: StateFlow<MapState> = now

    /** What a person has moved it to; null: all of the track. */
    var look: Look? = null

    /** Goes up with each choice: what was being opened for the former one is closed again. */
    private var choice = 0

    /** Takes another map, or none. */
    suspend fun choose(uri: Uri?) {
        val former = preferences.map
        preferences.map = uri?.toString()
        if (uri != null) mayRead(uri, isTo = true)
        if (former != null && former != uri?.toString()) mayRead(Uri.parse(former), isTo = false)
        val open = now.value as? MapState.Open
        choice++
        now.value = MapState.None
        open?.tiles?.close()
        open()
    }

    /** Opens the map that was chosen; again, if that failed, or if it cannot be read any more. */
    suspend fun open() {
        val uri = preferences.map ?: return
        val open = now.value as? MapState.Open
        if (now.value is MapState.Opening || open?.tiles?.isLost == false) return
        open?.tiles?.close()
        val wanted = choice
        now.value = MapState.Opening
        withContext(NonCancellable) {
            // the screen that asks may go meanwhile
            val found = withContext(worker) { opened(Uri.parse(uri)) }
            if (choice == wanted) now.value = found else (found as? MapState.Open)?.tiles?.close()
        }
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
    } catch (_: RuntimeException) { // Android hands on what the app that has the file throws
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
